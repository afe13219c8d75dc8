'use strict'
// Functions that decide how a test ends, as they were before code of the tree ran. Whoever puts others in their place
// is told once each. It says nothing of what is put back before anybody looks.

const described = Object.getOwnPropertyDescriptor
const named = Object.getOwnPropertyNames
const watched = []
const told = new Set()

// Begin to watch the functions of an object, or some of them. Those of an earlier one of this name count no longer.
function watch (name, object, keys) {
  for (let at = watched.length - 1; at >= 0; at--) if (watched[at].name === name) watched.splice(at, 1)
  if (object === null || !['object', 'function'].includes(typeof object)) return
  for (const key of keys || named(object)) {
    const found = described(object, key)
    if (found && (found.get || typeof found.value === 'function')) watched.push({ name, object, key, found })
  }
}

// Those that are other functions now, and were not told before.
function replaced () {
  const found = watched.filter(({ object, key, found }) => {
    const now = described(object, key)
    return !now || now.value !== found.value || now.get !== found.get
  })
  const names = found.map(({ name, key }) => `${name}.${key}`).filter((one) => !told.has(one))
  for (const one of names) told.add(one)
  return names
}

module.exports = { watch, replaced }
