// Removes what an earlier build has left, so that files that are no longer made are neither packed nor tested.
import { rmSync } from "node:fs"

for (const directory of ["dist", "build"]) rmSync(new URL(`../${directory}`, import.meta.url), { recursive: true, force: true })
