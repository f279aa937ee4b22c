/* The reliable channel: messages of one end arrive at the other, whole, once, in order.

   Modelled: the protocol that is to come (design.md, decision 10; today's channel still sends
   again on a timer, see MUTANT_TIMER_RESENDS): messages with numbers; acknowledgements; the
   question "what have you?" after a reconnect, and on a timer while a message is
   unacknowledged; its answer, after which the sender sends the missing messages; a window in
   bytes.
   One direction only, as the other is the same. Each end has a connection of its own to the
   server; it notices that its own connection broke, and never that the other's did.
   File: lib/nats/wire/reliable-channel.ts.

   The connection: first in, first out, and loses nothing while both ends are connected. When
   either end's breaks, all frames on their way are lost, in both directions; a frame that is
   sent while either end is away is lost, too (core NATS: the subject has no subscriber).
   A question has a number, which its answer repeats. Every message sent before the question
   has arrived before it, or is lost: so after the answer exactly those are sent again that
   were last sent before the question and that the other end has not. About later messages the
   answer says nothing. (The model keeps, for each question, the set of those messages; the
   numbers of questions are used again when none of them is on its way.)
   Abstracted: a message is its number, and is 1 or 2 bytes long; a message in parts is several
   messages; the timer may fire EARLY times while something is on its way (it was too
   impatient), and else when nothing is, as only then must it.
   Bound: MESSAGES, BREAKS, EARLY, and QUESTIONS on their way at once.

   verify: safety
   verify: window
   verify: drained fair
   mutant: TIMER_RESENDS safety
   mutant: RESUME_RESENDS safety
   mutant: RESEND_ALL safety
   mutant: TAKES_ANY safety
   mutant: NO_TIMER drained fair
   mutant: NO_ANSWER drained fair
   mutant: WINDOW_LEAKS drained fair */

#ifndef MESSAGES
#define MESSAGES 4
#endif
#ifndef BREAKS
#define BREAKS 2
#endif
#ifndef EARLY
#define EARLY 1
#endif
#define QUESTIONS 3
#define WINDOW 4          /* bytes */
#define BYTES(n) (1 + (n) % 2)

mtype:kind = { data, ask, ack, have };

/* data: number; ask: number of the question. ack: last number taken; have: question, last number taken. */
chan forth = [8] of { mtype:kind, byte };
chan back = [8] of { mtype:kind, byte, byte };

bool senderUp = true;
bool receiverUp = true;
byte breaksLeft = BREAKS;
byte earlyLeft = EARLY;

/* The sender. */
byte lastSent;            /* highest number that was ever sent; the rest is the backlog */
byte acked;
byte unackedBytes;
byte before[QUESTIONS];   /* for each question: a set of numbers, bit n for message n */
byte question;            /* of the latest */
byte openQuestions;       /* asked, and not yet answered or lost; only for the bound */
bool mustAsk;             /* its connection is back */

/* The receiver. */
byte taken;
bool mustAck;             /* #ackTimer runs, or its connection is back */

/* Read by the properties only: the place of each message that was sent. */
mtype:place = { flying, arrived, lost };
mtype:place place[MESSAGES + 1];
byte delivered;           /* by onMessage */

#define isConnected (senderUp && receiverUp)
#define isDrained (acked == MESSAGES)
#define unacked (lastSent - acked)
#define BIT(n) (1 << (n))

inline LoseAll() {
  do
  :: nempty(forth) -> forth ? k, a
  :: nempty(back) -> back ? k, a, b
  :: else -> break
  od;
  n = 1;
  do
  :: n <= MESSAGES -> if :: place[n] == flying -> place[n] = lost :: else fi; n++
  :: else -> break
  od;
  openQuestions = 0; k = 0; a = 0; b = 0; n = 0
}

/* Nothing is sent again that a live connection still holds (design.md, decision 10), or that
   the other end has taken. */
inline Send(number) {
  assert(place[number] != flying && place[number] != arrived);
  q = 0;
  do
  :: q < QUESTIONS -> before[q] = before[q] & (255 - BIT(number)); q++
  :: else -> break
  od;
  q = 0;
  if
  :: isConnected -> place[number] = flying; forth ! data, number
  :: else -> place[number] = lost
  fi
}

inline Ask() {
  question = (question + 1) % QUESTIONS;
  before[question] = 0;
  n = acked + 1;
  do
  :: n <= lastSent -> before[question] = before[question] | BIT(n); n++
  :: else -> break
  od;
  n = 0;
  if
  :: isConnected -> openQuestions++; forth ! ask, question
  :: else
  fi
}

inline OnAck(upTo) {
  assert(upTo <= lastSent); /* else onImpostor: the ends of one channel never see one */
  do
  :: acked < upTo ->
    acked++;
#ifndef MUTANT_WINDOW_LEAKS
    unackedBytes = unackedBytes - BYTES(acked);
#endif
  :: else -> break
  od
}

inline ResendAll() {
  n = acked + 1;
  do
  :: n <= lastSent -> Send(n); n++
  :: else -> break
  od;
  n = 0
}

active proctype Sender() {
  mtype:kind k;
  byte a, b, n, q;
end:
  do
  :: atomic { /* #advance: a message goes if there is room for a byte; a long one may exceed it */
      senderUp && !mustAsk && lastSent < MESSAGES && unackedBytes < WINDOW && nfull(forth) ->
      lastSent++;
      unackedBytes = unackedBytes + BYTES(lastSent);
      Send(lastSent)
    }
  :: atomic { back ? [ack, _, _] && senderUp -> back ? ack, a, _; OnAck(a); a = 0 }
  :: atomic {
      back ? [have, _, _] && senderUp ->
      back ? have, b, a;
      openQuestions--;
      OnAck(a);
#ifdef MUTANT_RESEND_ALL
      ResendAll();
#else
      n = acked + 1;
      do
      :: n <= lastSent ->
        if :: (before[b] & BIT(n)) -> Send(n) :: else fi;
        n++
      :: else -> break
      od;
      n = 0;
#endif
      a = 0; b = 0
    }
  :: atomic { /* resume(): the connection is back; ask before anything else is sent */
      mustAsk && senderUp && openQuestions < QUESTIONS && nfull(forth) ->
      mustAsk = false;
#ifdef MUTANT_RESUME_RESENDS
      ResendAll()
#else
      if :: unacked > 0 -> Ask() :: else fi
#endif
    }
#ifndef MUTANT_NO_TIMER
  :: atomic { /* the timer */
      unacked > 0 && senderUp && !mustAsk && openQuestions < QUESTIONS - 1 && nfull(forth) &&
      (earlyLeft > 0 || (empty(forth) && empty(back) && !mustAck)) ->
      if :: nempty(forth) || nempty(back) || mustAck -> earlyLeft-- :: else fi;
#ifdef MUTANT_TIMER_RESENDS
      ResendAll()
#else
      Ask()
#endif
    }
#endif
  :: atomic { /* the sender's connection breaks, and is back */
      senderUp && breaksLeft > 0 -> breaksLeft--; senderUp = false; LoseAll()
    }
  :: atomic { !senderUp -> senderUp = true; mustAsk = true }
  od
}

active proctype Receiver() {
  mtype:kind k;
  byte a, b, n;
end:
  do
  :: atomic {
      forth ? [data, _] && receiverUp ->
      forth ? data, a;
      if
#ifdef MUTANT_TAKES_ANY
      :: a > taken ->
#else
      :: a == taken + 1 ->
#endif
        taken = a; place[a] = arrived; mustAck = true;
        delivered++;
        assert(delivered == a) /* onMessage: in order, none missing, none twice */
      :: else -> /* something before it is missing: dropped, until the sender asks */
        assert(a > taken);
        place[a] = lost
      fi;
      a = 0
    }
  :: atomic {
      forth ? [ask, _] && receiverUp && nfull(back) ->
      forth ? ask, a;
#ifdef MUTANT_NO_ANSWER
      openQuestions--;
#else
      if :: isConnected -> back ! have, a, taken :: else -> openQuestions-- fi;
#endif
      mustAck = false; a = 0
    }
  :: atomic { /* the acknowledgement timer */
      mustAck && receiverUp && nfull(back) ->
      mustAck = false;
      if :: isConnected -> back ! ack, taken, 0 :: else fi
    }
  :: atomic { receiverUp && breaksLeft > 0 -> breaksLeft--; receiverUp = false; LoseAll() }
  :: atomic { !receiverUp -> receiverUp = true; mustAck = true }
  od
}

/* reliable-channel.ts, head, 4: a window of bytes on its way, and the end of one message. */
ltl window { [] (unackedBytes < WINDOW + 2) }

/* reliable-channel.ts, drained(): if the connection breaks no more, the other end has
   everything, and this end knows it. Weak fairness: each end gets its turns. */
ltl drained { <> isDrained }
