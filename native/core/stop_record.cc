#include "stop_record.h"

namespace allstop::core {

Requester StopRecord::RequesterWithin(double patience_ms) const {
  if (!inherited_from) return own_origin.GetWithin(patience_ms);
  Requester requester = inherited_from->own_origin.GetWithin(patience_ms);
  requester.via = Via::kParent;
  return requester;
}

Requester StopRecord::RequesterSoFar() const {
  return (inherited_from ? inherited_from->own_origin : own_origin).GetWithin(0);
}

}  // namespace allstop::core
