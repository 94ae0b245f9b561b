// expect: a struct needs a default for each member: one of them cannot be made from \{\}
#include <sluice/schema.hpp>

struct In {
  const int a;
};
auto schema = sluice::schema_of<In>();
