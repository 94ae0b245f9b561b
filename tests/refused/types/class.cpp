// expect: this type has no JSON form: make it an aggregate
#include <sluice/schema.hpp>

class Secret {
 public:
  Secret() = default;

 private:
  int number_ = 0;
};
struct In {
  Secret secret;
};
auto schema = sluice::schema_of<In>();
