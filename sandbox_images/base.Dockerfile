# The base of the runtime image where a registry answered. The only step of all that has network.
# Where none answers the same result is bootstrapped and imported; see README.md.
ARG BASE
FROM ${BASE}
ARG PACKAGES
COPY strip.sh /strip.sh
RUN export DEBIAN_FRONTEND=noninteractive \
 && apt-get update \
 && apt-get upgrade --yes \
 && apt-get install --yes --no-install-recommends ${PACKAGES} \
 && sh /strip.sh \
 && rm /strip.sh
