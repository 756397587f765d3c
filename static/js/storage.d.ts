/** `localStorage` or `sessionStorage`; undefined where the browser forbids it. */
export function storageOf(kind: "localStorage" | "sessionStorage"): Storage | undefined;

/** What is kept under a name; undefined if that is nothing, or cannot be read. */
export function recall(storage: Pick<Storage, "getItem"> | undefined, name: string): unknown;

/** Whether it is kept now: only this page knows it where there is no storage, or no room. */
export function keep(storage: Pick<Storage, "setItem"> | undefined, name: string, value: unknown): boolean;
