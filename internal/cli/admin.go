package cli

import (
	"errors"
	"fmt"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/listen"
)

// Admin checks an admin server's addresses; empty ones are none.
func Admin(a config.Admin) error {
	var errs []error
	for field, addr := range map[string]string{"admin.address": a.Address, "admin.metricsAddress": a.MetricsAddress} {
		if addr == "" {
			continue
		}
		if _, err := listen.Parse(addr); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field, err))
		}
	}
	if a.Address == "" && a.MetricsAddress == "" {
		return nil
	}
	if a.Address == a.MetricsAddress {
		errs = append(errs, errors.New("admin.metricsAddress: is admin.address; leave it empty to serve both there"))
	}
	return errors.Join(errs...)
}
