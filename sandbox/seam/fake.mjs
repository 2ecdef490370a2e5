// Starts Seam's own fake on a free loopback port, with a second port through which the
// controller calls its database (add a device, move a code on, read the events).
import http from 'node:http'
import net from 'node:net'
import { randomUUID } from 'node:crypto'
import { pathToFileURL } from 'node:url'

// The fake listens on every interface; a stand-in with well-known keys must not.
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (port, ...rest) {
  return listen.call(this, { port, host: '127.0.0.1' }, ...rest.filter((a) => typeof a === 'function'))
}

const { createFake } = await import(pathToFileURL(process.env.FAKE_SEAM_ENTRY))
const fake = await createFake()
const db = fake.database

// Counting ids (event1, event2, …) come again after a restart and would look like repeats.
db.setState({ _getNextId: () => randomUUID() })

const read = async (request) => {
  let text = ''
  for await (const chunk of request) text += chunk
  return JSON.parse(text)
}

const control = http.createServer(async (request, response) => {
  try {
    const { call, args = [], read: key, from = 0 } = await read(request)
    const result = key ? db.getState()[key].slice(from) : db[call](...args)
    response.end(JSON.stringify({ result: result ?? null }))
  } catch (error) {
    response.statusCode = 500
    response.end(JSON.stringify({ error: String(error) }))
  }
})

const ready = (server) => new Promise((done) => (server.listening ? done() : server.once('listening', done)))

const { server } = await fake.startServer({ port: 0 })
control.listen(0)
await Promise.all([ready(server), ready(control)])
console.log(`ready ${server.address().port} ${control.address().port}`)

// Where the kernel does not kill children with their parent, the closed pipe says it.
process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
