export type ForeignWrite = { file: string; line: number; field: string; home: string };
export type House = {
  files: number;
  lines: number;
  casts: number;
  large: { file: string; name: string; methods: number }[];
  foreignWrites: ForeignWrite[];
};
export function readHouse(root?: string): House;
export function objectionTo(write: ForeignWrite): string;
