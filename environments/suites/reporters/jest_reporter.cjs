'use strict'
const { open, say, name, hideArguments } = require('./signed_log.cjs')

const STATUS = { passed: 'passed', failed: 'failed', pending: 'skipped', skipped: 'skipped', disabled: 'skipped', todo: 'skipped' }

module.exports = class {
  constructor () {
    open()
    hideArguments()
    say('start', { runner: 'jest' })
  }

  onTestFileStart (test) {
    say('begin', { id: name(test.path, []) })
  }

  onTestStart (test) { // jest before 27
    say('begin', { id: name(test.path, []) })
  }

  onTestResult (test, result) {
    const file = name(test.path, [])
    for (const one of result.testResults) {
      say('result', { id: name(test.path, [...one.ancestorTitles, one.title]), s: STATUS[one.status] || 'collected' })
    }
    const broken = result.testExecError || (result.failureMessage && result.testResults.length === 0)
    if (broken) say('result', { id: file, s: 'error' })
    say('done', { id: file })
  }

  onRunComplete (contexts, results) {
    say('end', { exit: results.success ? 0 : 1 })
  }
}
