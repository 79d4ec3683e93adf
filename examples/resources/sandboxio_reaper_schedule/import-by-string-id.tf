import {
  to = sandboxio_reaper_schedule.sweep
  id = "docker/sweep"
}
