package installation

import "context"

// once keeps a fact, or why it could not be had. Not safe for concurrent use: checks run one after the other.
type once[T any] struct {
	asked bool
	fact  T
	err   error
}

func (o *once[T]) get(ctx context.Context, collect func(context.Context) (T, error)) (T, error) {
	if !o.asked {
		o.asked = true
		o.fact, o.err = collect(ctx)
	}
	return o.fact, o.err
}
