// Checks the syntax of JavaScript files as `node --check` does, but checks all files in one process. Usage:
// node --experimental-vm-modules .ci/syntax.mjs FILE…
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import vm from 'node:vm'

const GIVEN = ['exports', 'require', 'module', '__filename', '__dirname']

const asScript = (text, filename) => vm.compileFunction(text, GIVEN, { filename })
const asModule = (text, identifier) => new vm.SourceTextModule(text, { identifier })

// As in Node, a `.js` file may be a module or a script.
const ways = (file) => (file.endsWith('.mjs') ? [asModule] : file.endsWith('.cjs') ? [asScript] : [asModule, asScript])

for (const file of process.argv.slice(2)) {
  const text = readFileSync(file, 'utf8')
  let fault
  const fits = ways(file).some((compile) => {
    try {
      compile(text, file)
      return true
    } catch (error) {
      fault ??= error
      return false
    }
  })
  if (!fits) {
    console.error(`${file}: ${fault.message}`)
    spawnSync(process.execPath, ['--check', file], { stdio: 'inherit' }) // `vm` does not report the position of the error, and Node does
    process.exitCode = 1
  }
}
