# <backend>/<name>
terraform import sandboxio_reaper_schedule.sweep docker/sweep
