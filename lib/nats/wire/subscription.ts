/** Subscriptions whose callbacks may throw. */

import type { Msg } from '@nats-io/transport-node';

/**
 * Makes the callback of a subscription. If `onMessage` throws, `onError` is called: an error
 * thrown into the client would end its reading of the socket, and nothing would be heard any
 * more. A refusal of the subscription by the server is ignored here: the connection's status
 * reports it (connection.ts).
 */
export function subscriptionCallback(
  onMessage: (message: Msg) => void,
  onError: (error: unknown) => void,
): (refusal: Error | null, message: Msg) => void {
  return (refusal, message) => {
    if (refusal !== null) return;
    try {
      onMessage(message);
    } catch (error) {
      onError(error);
    }
  };
}
