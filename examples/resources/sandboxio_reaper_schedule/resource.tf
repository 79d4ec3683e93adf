# Sweeps the sandboxes of templates that say reaper = "sweep".
resource "sandboxio_reaper_schedule" "sweep" {
  name     = "sweep"
  interval = "1m"
}

# Every night, whatever carries the label and is older than eight hours.
resource "sandboxio_reaper_schedule" "night" {
  name    = "night"
  cron    = "0 2 * * *"
  labels  = { team = "ml" }
  max_age = "8h"
}
