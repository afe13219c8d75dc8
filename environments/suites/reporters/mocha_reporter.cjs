'use strict'
const path = require('path')
const { open, say, name, hideArguments } = require('./signed_log.cjs')

// Mocha loads its reporter before the first test file.
open()
say('start', { runner: 'mocha' })
hideArguments()
let broken = 0

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
  if (/[\\/]mocha[\\/]lib[\\/](?:nodejs[\\/])?esm-utils\.js$/.test(one && one.filename) && asked.loadFilesAsync) {
    const load = asked.loadFilesAsync
    asked.loadFilesAsync = async (files, ...more) => {
      for (const file of files) await alone(() => load([file], ...more), file)
    }
  }
  if (/[\\/]mocha[\\/]lib[\\/]mocha\.js$/.test(one && one.filename) && asked.prototype && asked.prototype.loadFiles) {
    const load = asked.prototype.loadFiles
    asked.prototype.loadFiles = function (then) {
      const files = this.files
      for (const file of files) {
        this.files = [file]
        alone(() => load.call(this), file)
      }
      this.files = files
      if (then) then()
    }
  }
}

module.exports = class {
  constructor (runner) {
    const id = (test) => name(test.file, test.titlePath())
    runner.on('test', (test) => say('begin', { id: id(test) }))
    runner.on('pass', (test) => say('result', { id: id(test), s: 'passed' }))
    runner.on('pending', (test) => say('result', { id: id(test), s: 'skipped' }))
    runner.on('fail', (test) => say('result', { id: id(test), s: test.type === 'hook' ? 'error' : 'failed' }))
    runner.on('end', () => say('end', { exit: broken || (runner.stats && runner.stats.failures) ? 1 : 0 }))
  }
}
