/** The messages of clients and server, as they are on the wire. There is no code behind these types. */

/** A number, arguments and a text, such as "403:denied_by_rights:publish_denied". */
export type ErrorText = `${number}:${string}:${string}`;

/** The code of a refusal, from the list or the receiver's own; see docs/reference/error-codes.md. */
export type RefusalCode = `${"user" | "communication"}.${string}`;

export type ConnectionType = "websocket" | "long-polling" | "callback-polling";
export type RequestMode = "first" | "all" | "one";
export type Properties = Record<string, unknown>;

/** What the client should do next; times are milliseconds. */
export interface Advice {
    reconnect: "retry" | "handshake" | "none";
    interval: number;
    timeout: number;
    maxInterval?: number;
}

// Verdicts and places in histories

/** The outcome of one message, by the `seq` of its last hand-over. */
export type Verdict = {seq: number; state: "OK"; errorCode?: undefined} | Refusal;

export interface Refusal {
    seq: number;
    errorCode: RefusalCode;
    message?: string;
    /** Milliseconds until the next attempt, with a code of communication. */
    delay?: number;
}

/** What any message of a receiver may have in `ext.delivery`. */
export interface Receiving {
    verdicts?: Verdict[];
    /** What the receiver is still processing. */
    pending?: number[];
}

export interface Place {
    cursor: number;
    epoch: string;
}

/** Where a subscription begins; see docs/reference/replay.md. */
export type ReplayFrom = boolean | number | string | Pick<Place, "cursor"> | Place | {time: number};

export interface Replayed {
    epoch: string;
    messages: number;
    recovered?: boolean;
    lost?: Record<string, {from: number; to: number}>;
}

// What clients send

interface FromClient {
    clientId?: string;
    id?: string | number;
}

export interface SessionOptions {
    name: string;
    timeout?: number;
    maxSessions?: number;
    clearSessions?: boolean;
}

/** What a handshake requests; see docs/reference/delivery.md. */
export interface DeliveryOptions {
    session?: string | SessionOptions;
    retries?: number;
    delay?: number;
    responseTimeout?: number;
    dispatcherActive?: boolean;
    maxEntries?: number;
    oneway?: boolean;
    onUserException?: "continue" | "dead";
    queue?: {maxEntries?: number; maxBytes?: number};
    secret?: string;
    ptp?: boolean;
}

export type Credentials = {token: string} | {user: string; password: string};

export interface Handshake extends FromClient {
    channel: "/meta/handshake";
    version: string;
    minimumVersion?: string;
    supportedConnectionTypes: ConnectionType[];
    ext?: {
        ack?: boolean | "true";
        delivery?: boolean | "true" | DeliveryOptions;
        /** A reply channel, or the one that the session had. */
        request?: true | `/ret/${string}`;
        replay?: true;
        authentication?: Credentials;
        timesync?: {tc: number; l: number; o: number};
        [own: string]: unknown;
    };
}

export interface Connect extends FromClient {
    channel: "/meta/connect";
    connectionType: ConnectionType;
    advice?: {timeout?: number; interval?: number};
    ext?: {ack?: number; delivery?: Receiving; timesync?: {tc: number; l: number; o: number}; [own: string]: unknown};
}

export interface SubscribeOptions extends Receiving {
    filter?: string;
    history?: {numEntries?: number; newestFirst?: boolean};
    initialUpdate?: boolean;
    local?: boolean;
    newestOnly?: boolean;
    notify?: boolean;
    oneway?: boolean;
    persistent?: boolean;
    responds?: boolean;
}

export interface Subscribe extends FromClient {
    channel: "/meta/subscribe";
    subscription: string | string[];
    ext?: {delivery?: SubscribeOptions; replay?: ReplayFrom | Record<`/${string}`, ReplayFrom>; [own: string]: unknown};
}

export interface Unsubscribe extends FromClient {
    channel: "/meta/unsubscribe";
    subscription: string | string[];
    ext?: {delivery?: Receiving; [own: string]: unknown};
}

export interface Disconnect extends FromClient {
    channel: "/meta/disconnect";
    ext?: {ack?: number; delivery?: Receiving & {end?: boolean; discard?: boolean}; [own: string]: unknown};
}

export interface TopicOptions {
    destroyDelay?: number;
    readonly?: boolean;
    history?: {maxEntries: number; maxBytes?: number};
}

export type Destination = string | {name: string; forceQueuing?: boolean; ignoreSilently?: boolean};

export interface PublishOptions extends Receiving {
    priority?: number;
    persistent?: boolean;
    expiration?: {lifeTime?: number; forceDestroy?: boolean};
    properties?: Properties;
    /** By which the server recognises a repeat. */
    key?: string;
    refuseHeld?: boolean;
    destinations?: Destination[];
    subscribable?: boolean;
    delay?: number;
    forceUpdate?: boolean;
    topic?: TopicOptions;
    administrative?: boolean;
}

/** `ext` of a publish. Receivers see the keys that are not the server's. */
export interface PublishExt {
    delivery?: PublishOptions;
    /** Makes it a request; see docs/reference/requests.md. */
    replyTo?: `/ret/${string}`;
    timeout?: number;
    request?: RequestMode;
    mime?: string;
    status?: "ERROR";
    authentication?: Credentials;
    [own: string]: unknown;
}

export interface Publish<Data = unknown> extends FromClient {
    channel: string;
    data: Data;
    ext?: PublishExt;
    [own: string]: unknown;
}

/** The data of a publish to `/service/delivery`. */
export type DeliveryCall = Verdict | Verdict[] | {verdicts: Verdict[]};

/** The data of a publish to `/service/ptp`. */
export interface PtpCall {
    destinations: Destination[];
    content: unknown;
    /** "" gives the message a channel of its own. */
    channel?: string;
}

export type ClientMessage = Handshake | Connect | Subscribe | Unsubscribe | Disconnect | Publish;

// What the server replies

interface Answer {
    channel: string;
    id?: string;
    advice?: Advice;
    timestamp?: string;
}

/** Any reply that is not successful. */
export interface Refused extends Answer {
    successful: false;
    error: ErrorText;
    subscription?: string | string[];
    supportedConnectionTypes?: ConnectionType[];
    ext?: {delivery?: {destinations?: DestinationOutcome[]; unknown?: number[]}; [own: string]: unknown};
}

interface Accepted extends Answer {
    successful: true;
    error?: undefined;
}

/** What a session has agreed on, in the reply to its handshake. */
export interface Terms extends Required<Omit<DeliveryOptions, "session" | "queue" | "secret">> {
    session: {name: string; timeout?: number; maxSessions?: number};
    queue?: {maxEntries?: number; maxBytes?: number};
    secret?: string;
    resumed: boolean;
    waiting: number;
    lostSubscriptions?: string[];
}

export interface Authentication {
    subject: string;
    method: string;
    /** Milliseconds since 1970. */
    expires?: number;
}

export interface TimeSync {
    tc: number;
    ts: number;
    p: number;
    a: number;
}

export interface HandshakeAccepted extends Accepted {
    channel: "/meta/handshake";
    clientId: string;
    version: string;
    minimumVersion: string;
    supportedConnectionTypes: ConnectionType[];
    advice: Advice;
    /** How many messages came with the reply. */
    "x-messages"?: number;
    ext?: {
        ack?: true | "true" | {enabled: true; batch: number};
        delivery?: Terms;
        ret?: `/ret/${string}`;
        replay?: true;
        authentication?: Authentication;
        timesync?: TimeSync;
        [own: string]: unknown;
    };
}

export interface ConnectAccepted extends Accepted {
    channel: "/meta/connect";
    /** `ack` is the number of the batch. */
    ext?: {ack?: number; replay?: Place; delivery?: {unknown: number[]}; timesync?: TimeSync; [own: string]: unknown};
}

export interface SubscribeAccepted extends Accepted {
    channel: "/meta/subscribe" | "/meta/unsubscribe";
    subscription: string | string[];
    ext?: {replay?: Replayed; delivery?: {unknown: number[]}; [own: string]: unknown};
}

export interface DisconnectAccepted extends Accepted {
    channel: "/meta/disconnect";
    ext?: {delivery?: {unknown: number[]}; [own: string]: unknown};
}

export interface DestinationOutcome {
    name: string;
    state: "OK" | "QUEUED" | "IGNORED" | "ERROR";
    errorCode?: string;
}

/** What the server says of a publish with `ext.delivery`. */
export interface Confirmation {
    state: "OK";
    /** Absent if nothing was delivered. */
    id?: string;
    rcvTimestamp?: string;
    delay?: number;
    channel?: string;
    destinations?: DestinationOutcome[];
}

export interface PublishAccepted extends Accepted {
    ext?: {delivery?: Confirmation | {unknown: number[]}; [own: string]: unknown};
}

export type HandshakeReply = HandshakeAccepted | Refused;
export type ConnectReply = ConnectAccepted | Refused;
export type SubscribeReply = SubscribeAccepted | Refused;
export type DisconnectReply = DisconnectAccepted | Refused;
export type PublishReply = PublishAccepted | Refused;

// What the server delivers

/** `ext.delivery` of an event for a session with verdicts. */
export interface Delivery {
    id: string;
    /** New with each hand-over; verdicts name it. */
    seq: number;
    state: "OK" | "ERASED";
    sender: string;
    rcvTimestamp: string;
    priority: number;
    queue: {index: number; size: number};
    subscription?: string;
    expiration?: {lifeTime: number; remainingLife: number};
    redelivered?: number;
    /** How often it was replayed from a dead letter. */
    generation?: number;
    initial?: true;
    properties?: Properties;
    cbSessionId?: string;
}

/** The same for other sessions: what the message brings along, and nothing of a hand-over. */
export type PlainDelivery = Pick<Partial<Delivery>, "state" | "properties"> & {
    [other in Exclude<keyof Delivery, "state" | "properties">]?: undefined;
};

export interface EventMessage<Data = unknown> {
    channel: string;
    data: Data;
    timestamp?: string;
    ext?: EventExt;
    [own: string]: unknown;
}

export interface EventExt {
    delivery?: Delivery | PlainDelivery;
    replay?: Place;
    /** It is a request; a reply is published there. */
    replyTo?: `/ret/${string}`;
    timeout?: number;
    mime?: string;
    status?: "ERROR" | "END";
    [own: string]: unknown;
}

/** The end of a request without a reply, on the channel of its `replyTo`. */
export interface RequestFailed extends EventMessage<{error: ErrorText; code?: string; message?: string}> {
    error: ErrorText;
}

/** The end of a request to all. */
export type RequestEnd = EventMessage<{replies: number; missing: number}>;

/** The answer of a service, such as `/service/topics`. */
export interface ServiceAnswer<Data = unknown> extends EventMessage<Data> {
    id?: string;
    successful: boolean;
}

/** The data on `/sys/deadMessage`. */
export interface DeadLetter {
    id: string;
    content: unknown;
    channel: string;
    key: {oid: string};
    qos: {
        sender: string;
        priority: number;
        rcvTimestamp: string;
        properties: Properties;
        expiration?: {lifeTime: number; forceDestroy: boolean};
    };
    errorCode: string;
    reason: string;
    receiver: string;
    rcvTimestamp: string;
    attempts: Attempt[];
    attemptCount: number;
    redelivered: number;
    fingerprint: string;
    generation: number;
}

export interface Attempt {
    n: number;
    /** Milliseconds since 1970. */
    time: number;
    node: string;
    transport: string;
    outcome: string;
    latency: number;
    code: string;
    text: string;
    receiver: string;
}

export type ServerMessage =
    | HandshakeReply
    | ConnectReply
    | SubscribeReply
    | DisconnectReply
    | PublishReply
    | EventMessage;
