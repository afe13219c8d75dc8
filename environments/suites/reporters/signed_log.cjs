'use strict'
// The signed log of a runner on Node; see environments/suites/testlogs/events.py. Standard input holds the order as JSON.
const fs = require('fs')
const path = require('path')
const { createHmac } = require('crypto')

const stringify = JSON.stringify
const write = fs.writeSync
let order = null
let stream = null
let count = 0

function open () {
  if (order !== null) return
  order = JSON.parse(fs.readFileSync(0, 'utf8'))
  stream = fs.openSync(order.report, 'ax', 0o600)
}

function say (event, fields) {
  open()
  const text = Buffer.from(stringify({ n: count++, e: event, ...fields }))
  const signature = createHmac('sha256', Buffer.from(order.key, 'hex')).update(text).digest('hex')
  write(stream, Buffer.concat([Buffer.from(signature + ' '), text, Buffer.from('\n')]))
}

// What the runner was called with has been read. Programs under test read it, too, and take it for their own.
function hideArguments () {
  process.argv.splice(2)
}

// File, describe blocks and title: what tells one test from another.
function name (file, titles) {
  const shown = file ? path.relative(process.cwd(), file).split(path.sep).join('/') : ''
  return [shown, ...titles].filter((one) => one !== '').join(' > ')
}

module.exports = { open, say, name, hideArguments }
