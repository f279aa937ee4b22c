/** What is done with messages: anybody may have sent them. */

import type { Msg } from '@nats-io/transport-node';

/**
 * A callback of a subscription. What it throws would end the client's reading of its socket,
 * so that nothing is heard any more; the server's refusals come to it, too.
 */
export function subscriptionCallback(
  onMessage: (message: Msg) => void,
  onError: (error: unknown) => void,
): (error: Error | null, message: Msg) => void {
  return (refusal, message) => {
    if (refusal !== null) return; // it is among the connection's errors
    try {
      onMessage(message);
    } catch (error) {
      onError(error);
    }
  };
}
