// What the page asks its server: one function. Every reply is JSON; `error` in it is told as the server says it.

const HELD = "dpsql-studio-key";
const brought = new URLSearchParams(location.hash.slice(1)).get("key");
if (brought) {
  localStorage.setItem(HELD, brought);
  history.replaceState(null, "", location.pathname);
}

export class ApiError extends Error {
  constructor(error) {
    super(error.message);
    this.refusal = error;
  }
}

/** Return what an endpoint replies. Throws ApiError. */
export const ask = async (name, body = {}, signal = undefined) => {
  let reply;
  try {
    reply = await fetch(`/api/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Dpsql-Key": localStorage.getItem(HELD) ?? "" },
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
