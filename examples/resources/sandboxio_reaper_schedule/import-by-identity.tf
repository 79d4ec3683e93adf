import {
  to = sandboxio_reaper_schedule.sweep
  identity = {
    id = "docker/sweep"
  }
}
