export type Event = { at: number; place: string; what: string } & Record<string, unknown>;
export type Plan = { steps: ({ kind: string; at: number } & Record<string, unknown>)[] };

export const judges: Record<string, (history: Event[], plan: Plan) => string[]>;
export function judge(history: Event[], plan: Plan): [judge: string, text: string][];
