export interface SourceMap {
  version: number;
  sources: string[];
  names: string[];
  mappings: string;
}
export function lineMap(map: SourceMap): SourceMap;
