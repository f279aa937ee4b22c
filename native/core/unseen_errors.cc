#include "unseen_errors.h"

#include <algorithm>
#include <utility>

#include "of_this_process.h"

namespace allstop::core {

UnseenErrors& UnseenErrors::Get() { return OfThisProcess<UnseenErrors>::Get(); }

void UnseenErrors::Note(Unseen thrown, std::uint64_t given_before) {
  const std::string& id = thrown.error->fields().id;
  std::list<Unseen> noted;
  noted.push_back(std::move(thrown));
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto given =
      std::find_if(given_.begin(), given_.end(), [&](const Given& each) { return each.id == id; });
  if (given != given_.end()) {
    if (given->number < given_before) return;
    given_.erase(given);
  }
  const bool is_known = std::any_of(unseen_.begin(), unseen_.end(), [&](const Unseen& each) {
    return each.error->fields().id == id;
  });
  if (is_known) return;
  unseen_.splice(unseen_.end(), noted);
  if (unseen_.size() <= kMaxUnseen) return;
  unseen_.pop_front();
  ++dropped_;
}

bool UnseenErrors::Give(const std::string& id) noexcept {
  UnseenErrors* const ledger = OfThisProcess<UnseenErrors>::Find();
  return ledger != nullptr && ledger->Remove(id);
}

bool UnseenErrors::Remove(const std::string& id) noexcept {
  std::list<Unseen> removed;  // destroyed after the lock is released
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(unseen_.begin(), unseen_.end(), [&](const Unseen& each) {
    return each.error->fields().id == id;
  });
  if (found == unseen_.end()) return false;
  removed.splice(removed.end(), unseen_, found);
  try {
    given_.push_back({id, given_so_far_++});
  } catch (...) {  // no memory: if the same error is thrown again, it counts as unseen
    return true;
  }
  if (given_.size() > kMaxGiven) given_.pop_front();
  return true;
}

std::uint64_t UnseenErrors::given_so_far() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return given_so_far_;
}

UnseenErrors::Report UnseenErrors::Take() {
  Report report;
  const std::lock_guard<std::mutex> lock(mutex_);
  report.errors.assign(unseen_.begin(), unseen_.end());
  report.dropped = std::exchange(dropped_, 0);
  unseen_.clear();
  return report;
}

}  // namespace allstop::core
