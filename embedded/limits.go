package embedded

import (
	"context"
	"fmt"
	"io"
	"os"

	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// CheckLimits reads a limits file and says what is wrong with it, as Open would.
func CheckLimits(path string) error {
	_, err := readLimits(path)
	return err
}

// readLimits is what a file asks to apply; nil where there is none.
func readLimits(path string) (*quorleasev1.LimitsApplyRequest, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // what is there stays
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	defer file.Close()
	// One byte more than there may be, so that what is too long is refused instead of cut.
	data, err := io.ReadAll(io.LimitReader(file, limitsfile.FileMax+1))
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	request, err := limitsfile.ParseNamed(path, data)
	if err != nil {
		return nil, err
	}
	request.Prune = true
	return request, nil
}

// Reload reads the limits file again and applies it: all of it or nothing. It says how many
// limits and retry budgets were added, changed or deleted.
func (a *Authority) Reload(ctx context.Context) (changes int, err error) {
	request, err := readLimits(a.config.Limits)
	if err != nil || request == nil {
		return 0, err
	}
	return a.apply(ctx, request)
}

// apply makes limits count.
func (a *Authority) apply(ctx context.Context, request *quorleasev1.LimitsApplyRequest) (changes int, err error) {
	answer, err := a.call(ctx, quorleasev1.Limits_Apply_FullMethodName, func(to any) {
		proto.Merge(to.(proto.Message), request)
	})
	if err != nil {
		return 0, fmt.Errorf("apply limits: %w", err)
	}
	return len(answer.(*quorleasev1.LimitsApplyResponse).GetChanges()), nil
}

// call is a unary call, whose request fill fills in.
func (a *Authority) call(ctx context.Context, method string, fill func(any)) (any, error) {
	return a.api.Call(peer.NewContext(ctx, caller), method, func(to any) error {
		fill(to)
		return nil
	})
}
