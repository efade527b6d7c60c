// The login: a name and a password become a cookie that no script reads, and a key of this origin.

const at = (id) => document.getElementById(id);

at("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.target.querySelector("button");
  button.disabled = true;
  at("said").textContent = "";
  try {
    const reply = await fetch("/door/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ user: at("user").value, password: at("password").value, database: at("database").value }),
    });
    const found = await reply.json();
    if (found.key) {
      localStorage.setItem("dpsql-studio-key", found.key);
      location.replace("/");
      return;
    }
    at("said").textContent = "The login failed.";
  } catch {
    at("said").textContent = "The server does not answer.";
  }
  at("password").value = "";
  at("password").focus();
  button.disabled = false;
});
