import { existsSync } from 'fs'
import { createRequire } from 'module'
import { fileURLToPath } from 'url'

// Old vitest (0.21) takes the path of this file for one below the tree's root.
const told = fileURLToPath(import.meta.url)
const here = existsSync(told) ? told : told.slice(process.cwd().length)
const { open, say, name } = createRequire(here)('./signed_log.cjs')

function status (test) {
  if (test.mode === 'skip' || test.mode === 'todo') return 'skipped'
  if (!test.result) return 'collected'
  return { pass: 'passed', fail: 'failed', skip: 'skipped', todo: 'skipped' }[test.result.state] || 'collected'
}

function walk (file, task, titles) {
  for (const one of task.tasks || []) {
    if (one.type === 'suite') walk(file, one, [...titles, one.name])
    else say('result', { id: name(file, [...titles, one.name]), s: status(one) })
  }
  const broken = task.result && task.result.state === 'fail' && (task.result.errors || []).length > 0
  if (broken) say('result', { id: name(file, titles), s: 'error' })
}

export default class {
  onInit () {
    open()
    say('start', { runner: 'vitest' })
  }

  // What vitest 4 calls at the end, and what 3 and older do.
  onTestRunEnd (modules, errors) {
    this.onFinished(modules.map((one) => one.task), errors)
  }

  onFinished (files, errors) {
    if (this.done) return
    this.done = true
    let failed = (errors || []).length > 0
    for (const file of files || []) {
      walk(file.filepath, file, [])
      failed = failed || (file.result && file.result.state === 'fail')
    }
    say('end', { exit: failed ? 1 : 0 })
  }
}
