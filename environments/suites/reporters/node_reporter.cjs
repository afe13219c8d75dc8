'use strict'
const path = require('path')
const { open, say, name } = require('./signed_log.cjs')

// Each test file runs in a process of its own; this runs in the one that starts them.
module.exports = async function * (source) {
  open()
  say('start', { runner: 'nodetest' })
  const above = new Map()
  let failed = false
  for await (const { type, data } of source) {
    const { file, nesting } = data
    const titles = above.get(file) || []
    if (type === 'test:start') above.set(file, [...titles.slice(0, nesting), data.name])
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const { type: kind, error } = data.details || {}
    const why = type === 'test:fail' ? (error && error.failureType) || 'testCodeFailure' : ''
    const left = [data.skip, data.todo].some((one) => one !== undefined && one !== false)
    failed = failed || (type === 'test:fail' && !left)
    // A file without tests is one itself.
    const isFile = nesting === 0 && file && path.resolve(data.name) === path.resolve(file)
    if (kind === 'suite' && (!why || why === 'subtestsFailed')) continue
    const broken = why && (isFile || kind === 'suite' || why === 'cancelledByParent' || why === 'hookFailed')
    const status = left ? 'skipped' : broken ? 'error' : why ? 'failed' : 'passed'
    say('result', { id: name(file, isFile ? [] : [...titles.slice(0, nesting), data.name]), s: status })
  }
  say('end', { exit: failed ? 1 : 0 })
}
