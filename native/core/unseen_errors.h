// The errors that threads of this process threw and that the program has not been given yet.
#ifndef ALLSTOP_CORE_UNSEEN_ERRORS_H_
#define ALLSTOP_CORE_UNSEEN_ERRORS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "encoded_error.h"
#include "requester.h"

namespace allstop::core {

// One ledger for each process: the coordinator that recorded an error, and the JavaScript thread
// that reported it, may be gone when the process ends. Its mutex is the last in the lock order;
// Note is called with a coordinator's mutex held, so that no reader of the record can be given
// an error before it is noted.
class UnseenErrors {
 public:
  struct Unseen {
    std::shared_ptr<const EncodedError> error;
    std::string source;                    // the coordinator or cluster, for people
    std::shared_ptr<const Origin> origin;  // who threw it; may be null
  };
  struct Report {
    std::vector<Unseen> errors;  // the oldest first
    std::uint64_t dropped = 0;   // older ones, of which only the number is known
  };

  static constexpr std::size_t kMaxUnseen = 1024;
  static constexpr std::size_t kMaxGiven = 256;

  // Throws std::bad_alloc in its first call.
  static UnseenErrors& Get();

  // The error was thrown. Does nothing if the error is among the first `given_before` that the
  // program was given: the program knows it. A hook that began after those may have been given a
  // later one, and then throws it again without anybody else knowing it.
  void Note(Unseen thrown, std::uint64_t given_before = ~std::uint64_t{0});
  // The number of errors that the program was given so far.
  std::uint64_t given_so_far() const;
  // The program was given the error with this id. Returns whether it was in the ledger.
  static bool Give(const std::string& id) noexcept;
  // Empties the ledger.
  Report Take();

 private:
  struct Given {
    std::string id;
    std::uint64_t number;  // from 0
  };

  bool Remove(const std::string& id) noexcept;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::list<Unseen> unseen_;
  std::list<Given> given_;  // the last kMaxGiven errors that Give has removed
  std::uint64_t given_so_far_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_UNSEEN_ERRORS_H_
