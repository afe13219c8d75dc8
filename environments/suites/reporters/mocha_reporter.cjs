'use strict'
const { open, say, name } = require('./signed_log.cjs')

module.exports = class {
  constructor (runner) {
    open()
    say('start', { runner: 'mocha' })
    const id = (test) => name(test.file, test.titlePath())
    runner.on('test', (test) => say('begin', { id: id(test) }))
    runner.on('pass', (test) => say('result', { id: id(test), s: 'passed' }))
    runner.on('pending', (test) => say('result', { id: id(test), s: 'skipped' }))
    runner.on('fail', (test) => say('result', { id: id(test), s: test.type === 'hook' ? 'error' : 'failed' }))
    runner.on('end', () => say('end', { exit: runner.stats && runner.stats.failures ? 1 : 0 }))
  }
}
