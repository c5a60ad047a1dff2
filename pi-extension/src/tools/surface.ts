/** A surface is a family of tools that work on the same sessions; one file each defines one. */
import type { ToolDefinition } from "@earendil-works/pi-coding-agent";
import type { Instance } from "../instance.ts";
import { bash } from "./bash.ts";
import { stream } from "./stream.ts";
import { unified } from "./unified.ts";
import type { SurfaceWords } from "./words.ts";

/** A family of tools and how it is put into pi. */
export interface Surface {
  name: string;
  /** The names it registers. When another extension has one of them, all of them step aside. */
  tools(instance: Instance): readonly string[];
  /** Its tool in whose favour pi's own bash leaves the active tools; absent where bash stays. */
  replacesBash?: string;
  /**
   * One of its tools may have the name of pi's own bash, which then is out of reach: it is
   * registered only once an execd has answered. Its texts are made anew at each start.
   */
  ownsBash?: true;
  words: SurfaceWords;
  /** Makes the definitions for one instance of the extension. */
  define(instance: Instance): ToolDefinition[];
}

/** All surfaces by name. */
export const surfaces: ReadonlyMap<string, Surface> = new Map(
  [unified, stream, bash].map((surface) => [surface.name, surface]),
);
