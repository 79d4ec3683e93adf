package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// image is what a sandbox takes over from its image, after everything that
// could act on its own was refused or will be overridden.
type image struct {
	id      string
	volumes []string // where a tmpfs has to cover a declared volume
	unset   []string // variables that must not reach PID 1
}

// imageCache remembers pinned images, whose content cannot change.
type imageCache struct {
	mu     sync.Mutex
	byName map[string]*image
}

const maxImages = 64

func (c *imageCache) get(ref string) *image {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byName[ref]
}

func (c *imageCache) put(ref string, img *image) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byName == nil || len(c.byName) >= maxImages {
		c.byName = map[string]*image{}
	}
	c.byName[ref] = img
}

func (c *imageCache) drop(ref string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byName, ref)
}

// inspectImage finds the image on the engine. It never pulls: what runs was
// put there by somebody, and the error says how.
func (b *Backend) inspectImage(ctx context.Context, cli *client.Client, ref string) (*image, error) {
	parsed, err := driver.ParseImage(ref)
	if err != nil {
		return nil, err
	}
	if img := b.images.get(ref); img != nil {
		return img, nil
	}
	res, err := cli.ImageInspect(ctx, ref)
	if absent(err) {
		return nil, noImage(ref, parsed)
	}
	if err != nil {
		return nil, err
	}
	img := &image{id: res.ID}
	var env []string
	if c := res.Config; c != nil {
		if err := refuseOurLabels(ref, c.Labels); err != nil {
			return nil, err
		}
		if img.volumes, err = volumesOf(c.Volumes); err != nil {
			return nil, err
		}
		env = c.Env
	}
	img.unset = steering(env)
	if parsed.Pinned() {
		b.images.put(ref, img)
	}
	return img, nil
}

func noImage(ref string, parsed driver.Image) error {
	fix := "docker pull " + ref
	if parsed.ID {
		fix = "docker load or docker build it on this engine; docker images --no-trunc lists ids"
	}
	return &driver.Error{Code: driver.CodeNotFound, Field: "image", Hint: fix, Err: fmt.Errorf("the engine has no image %s, and images are never pulled for you", ref)}
}

// refuseOurLabels keeps an image from enlisting its containers: labels of an
// image are inherited, and our sweeps go by labels.
func refuseOurLabels(ref string, labels map[string]string) error {
	for k := range labels {
		if strings.HasPrefix(strings.ToLower(k), driver.LabelPrefix) {
			return driver.Invalid("image", fmt.Sprintf("%s carries the label %q, which is reserved", ref, k), "rebuild the image without labels that begin with "+driver.LabelPrefix)
		}
	}
	return nil
}

// goVariables steer the Go runtime of PID 1.
var goVariables = []string{"GODEBUG", "GOGC", "GOTRACEBACK", "GOMEMLIMIT", "GOMAXPROCS", "GORACE", "GOCOVERDIR"}

// steering lists the image's variables that would act on our own binary, on
// the dynamic loader, or pretend to come from sandboxio.
func steering(env []string) []string {
	unset := slices.Clone(goVariables)
	for _, kv := range env {
		k, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(k, "LD_") || strings.HasPrefix(strings.ToUpper(k), "SANDBOXIO_") {
			unset = append(unset, k)
		}
	}
	return unset
}
