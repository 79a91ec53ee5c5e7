// Reports tests in the words of gotestsum, of which scripts/check makes its summary.
export default async function* reporter(source) {
  const begun = performance.now()
  const counts = { passed: 0, skipped: 0, failed: 0 }
  const failed = []
  for await (const { type, data } of source) {
    if (type === "test:stderr" || type === "test:stdout") yield data.message
    if (type !== "test:pass" && type !== "test:fail") continue
    if (data.details.type === "suite") continue
    const seconds = `(${(data.details.duration_ms / 1000).toFixed(2)}s)`
    const test = `js ${data.name.replaceAll(" ", "_")}`
    if (data.skip !== undefined) {
      counts.skipped++
      yield `SKIP ${test} ${data.skip} ${seconds}\n`
    } else if (type === "test:pass") {
      counts.passed++
      yield `PASS ${test} ${seconds}\n`
    } else {
      counts.failed++
      const error = data.details.error?.cause ?? data.details.error
      failed.push(`=== FAIL: ${test} ${seconds}\n${error?.stack ?? error}\n`)
      yield `FAIL ${test} ${seconds}\n`
    }
  }
  if (failed.length > 0) yield `\n=== Failed\n${failed.join("\n")}`
  const all = counts.passed + counts.skipped + counts.failed
  const plural = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`
  const parts = [plural(all, "test"), counts.skipped && `${counts.skipped} skipped`, counts.failed && plural(counts.failed, "failure")]
  yield `\nDONE ${parts.filter(Boolean).join(", ")} in ${((performance.now() - begun) / 1000).toFixed(3)}s\n`
}
