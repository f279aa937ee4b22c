#include "stop_record.h"

namespace allstop::core {

Requester StopRecord::requester() const {
  if (!inherited_from) return own_origin.Get();
  Requester requester = inherited_from->own_origin.Get();
  requester.via = Via::kParent;
  return requester;
}

Requester StopRecord::RequesterSoFar() const {
  return inherited_from ? inherited_from->own_origin.GetSoFar() : own_origin.GetSoFar();
}

}  // namespace allstop::core
