/** `localStorage` or `sessionStorage`; undefined if the browser forbids it. */
export function storageOf(kind: "localStorage" | "sessionStorage"): Storage | undefined;

/** The value stored under a name; undefined if there is none or it cannot be read. */
export function recall(storage: Pick<Storage, "getItem"> | undefined, name: string): unknown;

/** Stores a value; returns false if there is no storage or it is full. */
export function keep(storage: Pick<Storage, "setItem"> | undefined, name: string, value: unknown): boolean;
