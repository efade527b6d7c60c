// What the page asks its server: one function. Every reply is JSON; `error` in it is told as the server says it.

const HELD = "dpsql-studio-key", DESK = "dpsql-studio-desk";
const brought = new URLSearchParams(location.hash.slice(1)).get("key");
if (brought) {
  localStorage.setItem(HELD, brought);
  sessionStorage.removeItem(DESK);
  history.replaceState(null, "", location.pathname);
}

export class ApiError extends Error {
  constructor(error) {
    super(error.message);
    this.refusal = error;
  }
}

/** Which of several policies this window is of, by its number; `goTo` begins the page anew for another. */
export const desk = () => sessionStorage.getItem(DESK) ?? "0";
export const goTo = (number) => {
  sessionStorage.setItem(DESK, number);
  location.reload();
};

/** Return what an endpoint replies. Throws ApiError. */
export const ask = async (name, body = {}, signal = undefined) => {
  let reply;
  try {
    reply = await fetch(`/api/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Dpsql-Key": localStorage.getItem(HELD) ?? "", "X-Dpsql-Desk": desk() },
      body: JSON.stringify(body),
      signal,
    });
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new ApiError({ code: "", message: "the studio does not answer: it has ended, or the machine sleeps" });
  }
  const found = await reply.json();
  if (found.error) throw new ApiError(found.error);
  return found;
};
