'use strict'
const path = require('path')
const assert = require('assert')
const { open, say, name, hideArguments } = require('./signed_log.cjs')
const { watch, replaced } = require('./watched.cjs')

// Mocha loads its reporter before the first test file.
open()
say('start', { runner: 'mocha' })
hideArguments()
let broken = 0

const GLOBALS = ['it', 'test', 'specify', 'describe', 'context', 'suite', 'before', 'after', 'beforeEach', 'afterEach']
function check () {
  for (const what of replaced()) say('tampered', { what })
}
// Mocha makes these anew for each file.
function watchGlobals () {
  watch('global', globalThis, GLOBALS)
  for (const one of GLOBALS.slice(0, 6)) watch(one, globalThis[one], ['skip', 'only'])
}

say('watched', {})
watch('assert', assert)
watch('assert.strict', assert.strict)
watch('Object', Object, ['is'])

// A file that cannot be loaded is an error by itself: mocha would end, and run none of the others.
function alone (load, file) {
  const tell = (error) => {
    broken++
    console.error(error)
    say('result', { id: name(path.resolve(file), []), s: 'error' })
  }
  try {
    const loaded = load()
    return loaded && loaded.catch ? loaded.catch(tell) : loaded
  } catch (error) {
    tell(error)
  }
}

for (const one of Object.values(require.cache)) {
  const asked = one && one.exports
  const part = /[\\/]mocha[\\/]lib[\\/](runnable|runner|test|hook|suite)\.js$/.exec(one && one.filename)
  if (part) watch(`mocha.${part[1]}`, asked.prototype)
  if (/[\\/]mocha[\\/]lib[\\/](?:nodejs[\\/])?esm-utils\.js$/.test(one && one.filename) && asked.loadFilesAsync) {
    const load = asked.loadFilesAsync
    asked.loadFilesAsync = async (files, before, after, ...more) => {
      const begin = (file) => { before(file); watchGlobals() }
      const end = (file, ...loaded) => { check(); after(file, ...loaded) }
      for (const file of files) await alone(() => load([file], before && begin, after && end, ...more), file)
    }
  }
  if (/[\\/]mocha[\\/]lib[\\/]mocha\.js$/.test(one && one.filename) && asked.prototype && asked.prototype.loadFiles) {
    const load = asked.prototype.loadFiles
    asked.prototype.loadFiles = function (then) {
      const files = this.files
      this.suite.on('pre-require', watchGlobals)
      for (const file of files) {
        this.files = [file]
        alone(() => load.call(this), file)
        check()
      }
      this.suite.removeListener('pre-require', watchGlobals)
      this.files = files
      if (then) then()
    }
  }
}

module.exports = class {
  constructor (runner) {
    const id = (test) => name(test.file, test.titlePath())
    watch('global', null)
    for (const one of GLOBALS.slice(0, 6)) watch(one, null)
    for (const when of ['start', 'test', 'pass', 'fail', 'end']) runner.on(when, check)
    runner.on('test', (test) => say('begin', { id: id(test) }))
    runner.on('pass', (test) => say('result', { id: id(test), s: 'passed' }))
    runner.on('pending', (test) => say('result', { id: id(test), s: 'skipped' }))
    runner.on('fail', (test) => say('result', { id: id(test), s: test.type === 'hook' ? 'error' : 'failed' }))
    runner.on('end', () => say('end', { exit: broken || (runner.stats && runner.stats.failures) ? 1 : 0 }))
  }
}
