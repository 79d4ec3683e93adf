import {
  to = sandboxio_template.python
  id = file("${path.module}/python.manifest.json")
}
