// Removes what an earlier build has left, so that files that are no longer made are not packed.
import { rmSync } from "node:fs"

rmSync(new URL("../dist", import.meta.url), { recursive: true, force: true })
