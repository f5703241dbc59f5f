package unary

import (
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
)

// HealthCheck is the path of the method that Health answers.
const HealthCheck = healthv1.Health_Check_FullMethodName

// Health answers grpc.health.v1.Health/Check. State says of a service, the empty name being the server as
// a whole, whether it is known and whether it serves; it must be safe for concurrent use.
func Health(state func(service string) (serving, known bool)) Handler {
	return func(request, reply []byte) ([]byte, codes.Code, string) {
		var in healthv1.HealthCheckRequest
		if err := proto.Unmarshal(request, &in); err != nil {
			return nil, codes.Internal, "malformed request"
		}
		serving, known := state(in.GetService())
		if !known {
			return nil, codes.NotFound, "unknown service"
		}
		out := healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_NOT_SERVING}
		if serving {
			out.Status = healthv1.HealthCheckResponse_SERVING
		}
		reply, err := proto.MarshalOptions{}.MarshalAppend(reply, &out)
		if err != nil {
			return nil, codes.Internal, "malformed reply"
		}
		return reply, codes.OK, ""
	}
}
