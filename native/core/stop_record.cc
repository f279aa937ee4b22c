#include "stop_record.h"

namespace allstop::core {

Requester StopRecord::requester() const {
  if (!inherited_from) return own_origin.Get();
  Requester requester = inherited_from->own_origin.Get();
  requester.via = Via::kParent;
  return requester;
}

}  // namespace allstop::core
