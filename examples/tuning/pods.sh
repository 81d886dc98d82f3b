for number in 1 2 3 4; do
  kubectl apply -f - <<POD >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: $1-$number}
spec:
  schedulerName: stowage
  containers:
    - name: main
      image: registry.k8s.io/pause:3.10
      resources: {requests: {cpu: 500m, memory: 512Mi}}
POD
  kubectl wait --for=condition=PodScheduled --timeout=120s \
    "pod/$1-$number" >/dev/null
done
kubectl get pods -o custom-columns=NODE:.spec.nodeName --no-headers \
  $(for number in 1 2 3 4; do echo "$1-$number"; done) | sort | uniq -c
