resource "sandboxio_reaper_schedule" "nightly" {
  name     = "nightly"
  interval = "5m"
  max_age  = "720h"
}
