export const stories: Record<string, object>;
