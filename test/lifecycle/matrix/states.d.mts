export const states: Record<string, object>;
