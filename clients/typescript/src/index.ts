/**
 * A client of Quorlease, the replicated authority for shared limits. It needs nothing but Node.
 */
export { Client, type AcquireOptions, type ClientOptions, type Logger, type Work } from "./client.js";
export { currentAttempt, retry, RETRY_HEADER, retryingFetch, type RetryOptions, type Try } from "./retry.js";
export {
  AMOUNT_MAX, type Charge, type Charged, Closed, type Decision, type Denial, Denied, type Lease, QuorleaseError,
  type Remaining, RequestError, retryAfterMs, type Settled, type Settlement, Unanswered, type Usage,
} from "./types.js";
