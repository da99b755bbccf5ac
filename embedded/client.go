package embedded

import (
	"context"
	"net"

	"google.golang.org/grpc/peer"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client"
)

// Client is a client that asks the authority. Endpoints, Credentials, Dial and Direct of the
// configuration are not used; everything else is as it would be with a cluster. Close it before
// the authority.
func (a *Authority) Client(config client.Config) (*client.Client, error) {
	config.Endpoints, config.Credentials = []string{a.address}, nil
	config.Dial = func(ctx context.Context, _ string) (net.Conn, error) { return a.inside.DialContext(ctx) }
	config.Direct = a.acquire
	return client.New(config)
}

// caller is who asks in this process.
var caller = &peer.Peer{Addr: place(insideAddress)}

// acquire answers an acquire as the unary call does. The request is read until then and no longer.
func (a *Authority) acquire(
	ctx context.Context, r *quorleasev1.AcquireRequest,
) (*quorleasev1.AcquireResponse, error) {
	answer, err := a.call(ctx, quorleasev1.Admission_Acquire_FullMethodName, func(to any) {
		own := to.(*quorleasev1.AcquireRequest)
		own.LeaseId, own.Client, own.Class, own.Attempt = r.GetLeaseId(), r.GetClient(), r.GetClass(), r.GetAttempt()
		own.Charges, own.Attributes, own.Amounts = r.GetCharges(), r.GetAttributes(), r.GetAmounts()
		own.KnownRevision = r.KnownRevision
	})
	if err != nil {
		return nil, err
	}
	return answer.(*quorleasev1.AcquireResponse), nil
}
