// Templates with the TypeScript SDK, against the server that the environment names.

import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BuildError, Sandbox, Template, waitForFile } from 'e2b'

const context = await mkdtemp(join(tmpdir(), 'context-'))
try {
  await writeFile(join(context, 'one.txt'), 'one')
  const template = Template({ fileContextPath: context }).fromTemplate('base')
    .setEnvs({ WHO: 'a template' }).setWorkdir('/srv/work').copy('*.txt', 'texts', { mode: 0o600 }).runCmd('echo "built by $WHO"')
    .setStartCmd('echo $WHO >>/srv/started', waitForFile('/srv/started'))
  const logs = []
  const built = await Template.build(template, 'script:v1', { onBuildLogs: (entry) => logs.push(entry.message) })
  assert.deepEqual([built.templateId, built.tags], ['script', ['v1']])
  assert.ok(logs.includes('built by a template'), logs.join('\n'))
  assert.deepEqual([await Template.exists('script'), await Template.exists('other')], [true, false])
  assert.deepEqual((await Template.getTags('script')).map((t) => [t.tag, t.buildId]), [['v1', built.buildId]])
  const sandbox = await Sandbox.create('script:v1', { envs: { WHO: 'a sandbox' } })
  assert.equal((await sandbox.commands.run('pwd; cat texts/one.txt /srv/started')).stdout, '/srv/work\nonea sandbox\n')
  await sandbox.kill()
  await assert.rejects(Template.build(Template().fromBaseImage().runCmd('exit 3'), 'bad'), (e) => e instanceof BuildError && e.message.includes("failed to run command 'exit 3'"))
} finally {
  await rm(context, { recursive: true })
}
process.exit() // as sdk.mjs does
