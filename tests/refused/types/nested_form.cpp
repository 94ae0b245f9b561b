// expect: .*spread what is nested over several members
#include <sluice/server.hpp>

struct Address {
  std::string street;
};
struct Form {
  Address address;
};
sluice::Task<std::string> ask(sluice::Call& call) {
  co_await call.elicit<Form>("Where do you live?");
  co_return "";
}
