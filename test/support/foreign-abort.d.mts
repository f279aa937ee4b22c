export class ForeignSignal {
  readonly listenerCount: number;
}
export class ForeignController {
  readonly signal: AbortSignal & ForeignSignal;
  abort(): void;
}
