import {
  to = sandboxio_sandbox.notebook
  id = "docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
}
